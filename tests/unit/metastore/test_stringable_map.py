"""Properties of a request as the text in which Hive's queue keeps them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.metastore import stringable_map


def test_properties_are_counted_as_hive_counts_them() -> None:
    """The form of ``StringableMap.toString``: a length in UTF-16 units before each part."""
    assert stringable_map.to_text({"a": "bc", "key": ""}) == "2:1:a2:bc3:key0:"
    assert stringable_map.to_text({"\U0001f600": "ä:1"}) == "1:2:\U0001f6003:ä:1"
    assert stringable_map.to_text({}) is None


def test_a_text_of_hive_is_read() -> None:
    text = "2:33:compactor.mapreduce.map.memory.mb3:50026:tblprops.orc.compress.size4:8192"
    assert stringable_map.from_text(text) == {
        "compactor.mapreduce.map.memory.mb": "500",
        "tblprops.orc.compress.size": "8192",
    }
    assert stringable_map.from_text(None) == stringable_map.from_text("") == stringable_map.from_text("0:") == {}


@pytest.mark.parametrize("text", ["1:3:ab", "1:3:abc", "x", "2:1:a1:b"])
def test_a_text_that_ends_too_early_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"end too early|invalid literal|not enough values"):
        stringable_map.from_text(text)


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(_TEXTS, _TEXTS))
def test_what_is_written_is_read(properties: dict[str, str]) -> None:
    assert stringable_map.from_text(stringable_map.to_text(properties)) == properties
