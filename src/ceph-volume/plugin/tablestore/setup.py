from setuptools import find_packages, setup

setup(
    name="ceph-volume-tablestore",
    version="0.1.0",
    description="Ceph OSDs on TableStore, for ceph-volume",
    license="LGPL-2.1-or-later",
    packages=find_packages(include=["ceph_volume_tablestore"]),
    entry_points={"ceph_volume_handlers": ["tablestore = ceph_volume_tablestore:TableStore"]},
    zip_safe=False,
)
