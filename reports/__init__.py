"""From a stored run or a replayed grid to charts, tables and one self-contained page. Measures
nothing.

`summary` boils a run's samples down, `grid` does so with what `wheelwork summarise` wrote;
`answer`, `tables` and `method` put them into words; `figures` draws them on the `axes` and as the
`pictures` of all charts, in the looks of `style`; `page` lays it all out; `command` is `wheelwork
report`.
"""
