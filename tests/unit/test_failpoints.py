from colonnade import failpoints


def test_whoever_listens_is_told_until_no_longer() -> None:
    told: list[tuple[str, object]] = []

    def listener(point: str, about: object) -> None:
        told.append((point, about))

    failpoints.listen(listener)
    failpoints.reach("before write", 3)
    failpoints.unlisten(listener)
    failpoints.reach("after write", 3)
    assert told == [("before write", 3)]
