"""A document's way through validate and extract, in real children."""

from types import SimpleNamespace

from schema.domain.limits import DocumentLimits
from schema.wire.pages import ExtractedDocument
from stages.extract import ExtractStage
from stages.sandbox.pool import Sandbox
from stages.sandbox.settings import Budget
from stages.validate import ValidateStage
from tests.support.parsers import MemoryCheckpoint, MemoryDocuments, work_on

BUDGET = Budget(total_seconds=150, silence_seconds=150)
SMALL = DocumentLimits(max_pages=20)


async def passed(sandbox: Sandbox, data: bytes, *, limits=SMALL, checkpoint=None, **work) -> SimpleNamespace:
    """Take a document through both stages and return what each made of it."""
    documents = MemoryDocuments({"document": data})
    validated = await ValidateStage(documents, sandbox, limits, BUDGET).run(work_on(data, **work), MemoryCheckpoint())
    extracted = await ExtractStage(documents, sandbox, limits, BUDGET).run(
        work_on(data, inputs={"validate": validated.output}, **work), checkpoint or MemoryCheckpoint()
    )
    document = ExtractedDocument.model_validate(extracted.output)
    return SimpleNamespace(
        validated=validated,
        extracted=extracted,
        pages=document.pages,
        attachments=document.attachments,
        texts=[" ".join(page.text.split()) for page in document.pages],
    )
