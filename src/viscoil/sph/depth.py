"""What kernels have to know of a search when they are compiled, in one number.

The depth of its scan; PARTING more where it may put particles apart that are at the same place, as the searches of steps do
where passes read records; one of the next two where places are sorted into records as well, and candidates read from those,
into a list of one piece or of several; and STAGED times the entries of a list that a block of threads collects in its shared
memory first. FEW more where particles are few: the same is done then, but the whole kernel is compiled for fewer blocks of
threads (backend.small_launches). SPILLING more where there may be longer lists than are collected.
"""

PARTING, RECORDED, TORN, STAGED, FEW, SPILLING = 4, 8, 16, 32, 4096, 8192
BASKETS = (44, 76, 92)  # that many entries per thread, whole fours, and SPARE: 128 threads share memory, 48 KiB at most
SPARE = 4  # for a batch that comes when a basket is full; and so many records lie behind the last candidate


def recorded(depth: int) -> bool:
    """Whether candidates are read as records."""
    return depth % FEW >= RECORDED


def torn(depth: int) -> bool:
    """Whether a list that is made from records has several pieces."""
    return depth % STAGED >= TORN


def staged(depth: int) -> int:
    """Entries that are collected before they are written; 0: written one by one."""
    return depth % FEW // STAGED


def collected(width: int) -> int:
    """What a list of that ``width`` adds to the depth: its basket. Widths leave room for a quarter more neighbours than
    expected, and the smaller the baskets, the more blocks a multiprocessor has room for: seldom used ends are left out."""
    size = next((size for size in BASKETS if 4 * size >= 3 * width), BASKETS[-1])
    return STAGED * size + (SPILLING if width > size else 0)


def room(depth: int) -> int:
    """Elements of the baskets of 128 threads."""
    return 128 * (staged(depth) + SPARE)


def spills(depth: int) -> bool:
    """Whether lists may have more entries than are collected."""
    return depth >= SPILLING


def levels(depth: int) -> int:
    """Of the device's scan."""
    return depth % PARTING


def parting(depth: int) -> bool:
    """Whether who is at the place of another is put beside it."""
    return recorded(depth) and depth % RECORDED >= PARTING
