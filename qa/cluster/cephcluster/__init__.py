"""A Ceph cluster on this machine: one mon, one mgr, some OSDs, loopback only.

The rooms: `errors` (what the operator reads), `wait` (conditions instead of
sleeps), `config` (directory layout and ceph.conf), `daemons` (one process),
`cluster` (all of them together), `keys` (cephx, where it is wanted), `services`
(CephFS' and S3's daemons), `client` (librados with deadlines), `model` and
`writer` (a client whose every acknowledgement can be checked later).

Everything runs inside the environment, as root.
"""
