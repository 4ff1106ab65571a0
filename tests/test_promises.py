"""Each promise has a test, and each test that is marked with one keeps one that was made."""

from tests.promises import PROMISES, marked_tests


def test_every_promise_has_a_test_and_every_mark_is_a_promise() -> None:
    tests = marked_tests()
    assert [promise for promise in PROMISES if promise not in tests] == []
    assert sorted(tests.keys() - set(PROMISES)) == []
    assert len(set(PROMISES)) == len(PROMISES)
