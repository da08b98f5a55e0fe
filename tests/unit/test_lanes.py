"""How much one process takes on: never more than it can end before the broker loses patience."""

from datetime import timedelta

import pytest

from schema.domain.states import Lane, Stage
from schema.runtime.settings import StagesSettings
from stages.lanes import plan

GIVEN = {
    "database_url": "postgresql://u:p@h/d",
    "amqp_url": "amqp://u:p@h/v",
    "s3_endpoint": "http://h",
    "s3_access_key": "a",
    "s3_secret_key": "s",
}


def test_a_scan_lane_takes_no_more_than_it_has_parsers():
    """A scan that waits for a parser here could be read by another worker."""
    plans = plan(list(Stage), StagesSettings(**GIVEN, child_processes=3))

    assert plans[Lane.EXTRACT_OCR].in_flight == 3
    assert set(plans) == set(Lane)


def test_a_claim_may_last_as_long_as_all_before_it_and_itself():
    """Waiting for a parser must not make a document look hung."""
    plans = plan([Stage.VALIDATE], StagesSettings(**GIVEN, quick_limit_seconds=100))

    assert plans[Lane.VALIDATE].limit == timedelta(seconds=8 * 100 + 60)


def test_a_claim_that_asks_a_model_may_last_longer_by_one_answer():
    """Only on normalize, and only where there is a model."""
    model = {"model_url": "http://models/v1", "model_name": "m", "model_timeout_seconds": 50}
    stages = [Stage.VALIDATE, Stage.NORMALIZE]

    plain = plan(stages, StagesSettings(**GIVEN))
    asking = plan(stages, StagesSettings(**GIVEN, **model))

    assert asking[Lane.NORMALIZE].limit == plain[Lane.NORMALIZE].limit + timedelta(seconds=50)
    assert asking[Lane.VALIDATE].limit == plain[Lane.VALIDATE].limit


def test_limits_that_outlast_the_broker_are_refused_at_the_start():
    """Found out at the start and not when RabbitMQ closes the channel of a long scan."""
    with pytest.raises(ValueError, match="consumer_timeout_seconds is 600"):
        plan([Stage.EXTRACT], StagesSettings(**GIVEN, consumer_timeout_seconds=600))
