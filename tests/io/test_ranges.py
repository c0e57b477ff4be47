"""Frame ranges as people type them."""

import pytest

from viscoil.errors import SceneError
from viscoil.io.ranges import frame_range

ALL = list(range(11))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ALL), ("", ALL), (":", ALL), ("::", ALL), ("3", [3]), ("-1", [10]), ("-11", [0]),
        ("2:4", [2, 3, 4]), ("8:", [8, 9, 10]), (":2", [0, 1, 2]), ("-3:", [8, 9, 10]), (":-9", [0, 1, 2]),
        ("::5", [0, 5, 10]), ("1::4", [1, 5, 9]), ("2:8:3", [2, 5, 8]), (" 2 : 4 ", [2, 3, 4]),
        ("9,0,2:3,3", [0, 2, 3, 9]), ("8:400", [8, 9, 10]),
    ],
)  # fmt: skip
def test_what_a_text_means(text, expected):
    assert frame_range(text, ALL) == expected


def test_gaps_are_passed_over_and_steps_count_numbers():
    assert frame_range("0:10:5", [0, 3, 5, 9]) == [0, 5]
    assert frame_range("-2:", [0, 3, 5, 9]) == [5, 9]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ten", 'cannot read "ten"'), ("1:2:3:4", 'cannot read "1:2:3:4"'), ("1,,2", 'cannot read ""'),
        ("1.5", 'cannot read "1.5"'), ("12", "no frame 12; there are 11 frames from 0 to 10"), ("-12", "counts from the end"),
        ("5:2", "ends at 2 before it begins at 5"), ("0:4:0", "the step is 0"), ("0:4:-1", "the step is -1"),
        ("20:30", "no frame lies in it"), ("-0", "counts from the end"),
    ],
)  # fmt: skip
def test_errors_speak(text, words):
    with pytest.raises(SceneError) as error:
        frame_range(text, ALL)
    assert words in str(error.value)


def test_no_frames_yet():
    assert frame_range(None, []) == []
    with pytest.raises(SceneError, match="no frames yet"):
        frame_range("3", [])
    with pytest.raises(SceneError, match="there is only frame 4"):
        frame_range("3", [4])
