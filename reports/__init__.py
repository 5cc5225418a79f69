"""From a stored run to charts, tables and one self-contained page. Reads runs only; measures nothing.

`summary` boils a run's samples down; `answer`, `tables` and `method` put them into words; `figures` draws them in the
looks of `style`; `page` lays it all out; `command` is `escapement report`.
"""
