"""The pipeline as a value: what to read, which steps, where to publish.  YAML and Python build the same object."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, field_validator, model_validator

from headrace.operators.resolve import operator_name
from headrace.operators.shapes import Call, Operator, Reader
from headrace.storage.reference import check_name, check_tag

MIB = 1 << 20

WriteMode = Literal["source", "append", "replace"]
RejectsPolicy = Literal["text", "coordinates", "sample"]


class Gates(BaseModel):
    """Conditions on the whole result, checked before anything is published."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_rows: int = Field(0, ge=0, description="fewest rows that may be published (rows)")
    max_drop_frac: float = Field(1.0, ge=0, le=1, description="largest share of the rows read that may be dropped")
    max_quarantine_frac: float = Field(1.0, ge=0, le=1, description="largest share that may be quarantined")


class Pipeline(BaseModel):
    """One pipeline: the same fields as the file.

    >>> from headrace.operators.text.length import Length
    >>> from headrace.operators.read.jsonl import Jsonl
    >>> spec = Pipeline(pipeline="web", output="corpora/web", steps=[Jsonl(root="in"), Length(min_chars=10)])
    >>> spec.to_mapping()["steps"][1]["op"]
    'text.length'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    pipeline: str = Field(description="name of the pipeline; part of what identifies its contribution to the output")
    output: str = Field(description="dataset to publish to")
    channel: str | None = Field(None, description="channel to move to the new version (prod, candidate, ...)")
    write: WriteMode = Field(
        "source",
        description="source: replace what this pipeline published from the same files before; "
        "append: add; replace: the result becomes the whole dataset",
    )
    rejects: RejectsPolicy = Field(
        "text", description="what dropped rows keep: text, coordinates, or a 1 % sample of texts"
    )
    unit_bytes: Annotated[int, Field(ge=1024, description="about how much input one unit holds (bytes)")] = 8 * MIB
    gates: Gates = Gates()
    # Serialised as any: a field typed as the base class would be dumped with the base's fields, without parameters.
    steps: tuple[SerializeAsAny[Operator], ...] = Field(description="a reader, then maps and global steps")

    @field_validator("pipeline", "output")
    @classmethod
    def _name(cls, value: str) -> str:
        return check_name(value)

    @field_validator("channel")
    @classmethod
    def _channel(cls, value: str | None) -> str | None:
        return value if value is None else check_tag(value)

    @model_validator(mode="after")
    def _shape(self) -> Pipeline:
        if not self.steps or not isinstance(self.steps[0], Reader):
            raise ValueError("steps[0] must be a reader (read.jsonl, read.parquet, read.text, ...)")
        for index, step in enumerate(self.steps[1:], 1):
            if isinstance(step, Reader):
                raise ValueError(f"steps[{index}] is a second reader; a pipeline has one, as its first step")
            if isinstance(step, Call):
                raise ValueError(f"steps[{index}] calls a model; this release runs readers, maps and global steps")
        for suffix in (".rejects", ".quarantine"):
            if self.output.endswith(suffix):
                raise ValueError(
                    f"output must not end in {suffix}: that dataset belongs to {self.output[: -len(suffix)]}"
                )
        return self

    @property
    def reader(self) -> Reader:
        """The first step."""
        first = self.steps[0]
        assert isinstance(first, Reader)
        return first

    def to_mapping(self) -> dict[str, Any]:
        """Plain values, as a pipeline file holds them; `headrace.pipelines.load.build` is the inverse."""
        plain = self.model_dump(mode="json", exclude={"steps"})
        plain["steps"] = [{"op": operator_name(type(step)), **step.model_dump(mode="json")} for step in self.steps]
        return plain
