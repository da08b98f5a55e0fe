"""The operation ``extract``: the text of a document, one event a page."""

from typing import Any

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.kinds import MediaType
from schema.domain.limits import limits_from_json
from schema.domain.options import options_from_json
from stages.adapters.careful import recognizer_for
from stages.adapters.pages import PageError
from stages.child.call import Call
from stages.child.inspection import wanted_pages
from stages.child.reading import opened


def extract(call: Call) -> dict[str, Any]:
    """Read the pages that were asked for and are not done yet.

    Shape: the request has ``media_type``, ``limits``, ``options``, ``skip`` (numbers of pages that are done),
    ``tool_seconds`` and, when no bytes came along, ``path``. Events are ``{"pages_wanted": n}``, once, and
    ``{"page": …}`` as in ``schema.wire.pages``; the answer has ``failed`` (page numbers) and ``attachments``.

    Raises:
        PermanentError: ``page_failed`` when the job is strict; when no page can be read, the code of that.
    """
    request = call.request
    options = options_from_json(request["options"])
    skip = frozenset(request["skip"])
    recognizer = recognizer_for(options, request["tool_seconds"], call.scratch)
    failures: dict[int, PageError] = {}
    with opened(
        MediaType(request["media_type"]), call.document(), limits_from_json(request["limits"]), recognizer
    ) as reader:
        wanted = wanted_pages(reader, options)
        call.emit({"pages_wanted": len(wanted)})
        for number in wanted:
            if number in skip:
                continue
            try:
                call.emit({"page": reader.read(number).as_json(number)})
            except PageError as error:
                if options.strict:
                    raise PermanentError(ErrorCode.PAGE_FAILED, pages=(number,)) from None
                failures[number] = error
        if len(failures) == len(wanted):
            raise failures[wanted[0]].as_failure()
        return {"failed": sorted(failures), "attachments": reader.attachments()}
