"""A retried request hashes to the same value in every release."""

from pydantic import BaseModel

from api.request_bodies import hash_request


class Form(BaseModel):
    name: str
    memo: str = ""


class LaterForm(BaseModel):
    """The form of a later release: fields in another order, and a new one."""

    memo: str = ""
    color: str | None = None
    name: str


def test_order_and_new_fields_do_not_change_the_hash() -> None:
    sent = {"name": "compiler", "memo": "parser"}
    assert hash_request(Form(**sent)) == hash_request(LaterForm(**sent))


def test_a_default_that_is_spelled_out_does_not_change_the_hash() -> None:
    assert hash_request(Form(name="compiler")) == hash_request(Form(name="compiler", memo=""))


def test_another_value_changes_the_hash() -> None:
    assert hash_request(Form(name="compiler")) != hash_request(Form(name="other"))
    assert hash_request(LaterForm(name="a")) != hash_request(LaterForm(name="a", color="red"))
