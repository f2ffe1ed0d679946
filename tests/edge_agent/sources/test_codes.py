"""Numbers of named alarms: stable, unique, and stored in the spool."""

from pathlib import Path

import pytest

from edge_agent.errors import ConfigRejected
from edge_agent.sources.codes import CodeBook, read_code_map
from edge_agent.spool import Spool
from edge_agent.spool_models import Appendix, NamedCode
from wire.log_rows import RowRejected


def test_number_stays_and_the_code_map_comes_first() -> None:
    codes = CodeBook({"Door open": 7, "12": 112})
    assert (codes.number("139"), codes.number("Door open"), codes.number("12")) == (139, 7, 112)
    assert codes.take_new() == []


def test_name_has_the_same_number_on_every_machine() -> None:
    first, second = CodeBook(), CodeBook()
    second.number("another")
    code = first.number("Door open", "The door of the infeed is open", "high")
    assert code == second.number("Door open") == 1_614_190_082
    assert first.take_new() == [NamedCode("Door open", code, "The door of the infeed is open", "high")]
    assert (first.number("Door open"), first.take_new()) == (code, [])


def test_names_with_the_same_hash_get_different_numbers_that_the_spool_stores(tmp_path: Path) -> None:
    usual = CodeBook().number("Door open")
    codes = CodeBook({"of the map": usual})
    other = codes.number("Door open")
    assert other == usual + 1
    spool = Spool(tmp_path / "spool")
    spool.append([], "x", Appendix(codes=tuple(codes.take_new())))
    spool.close()
    reopened, restored = Spool(tmp_path / "spool"), CodeBook()
    restored.restore(reopened.codes())
    reopened.close()
    assert restored.number("Door open") == other


@pytest.mark.parametrize("name", ["", "x" * 301, "99999999999", "2147483648"])
def test_impossible_names_are_rejected(name: str) -> None:
    with pytest.raises(RowRejected):
        CodeBook().number(name)


def test_number_of_names_is_limited() -> None:
    codes = CodeBook()
    for number in range(20_000):
        codes.number(f"alarm {number}")
    with pytest.raises(RowRejected, match="at most 20000"):
        codes.number("one more")


@pytest.mark.parametrize("text", ["name,code,text\nDoor open,7,x\n", "\ufeffcode;name\n7;Door open\n"])
def test_code_map_has_commas_or_semicolons_and_columns_in_any_order(tmp_path: Path, text: str) -> None:
    file = tmp_path / "codes.csv"
    file.write_text(text, encoding="utf-8")
    assert read_code_map(file) == {"Door open": 7}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("a,b\n1,2\n", "columns name and code"), ("name,code\nx,F7\n", "line 2: 'F7' is not an alarm code")],
)
def test_mistake_in_a_code_map_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "codes.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigRejected, match=sentence):
        read_code_map(file)
    with pytest.raises(ConfigRejected, match=r"Correct source\.codes"):
        read_code_map(tmp_path / "none.csv")
