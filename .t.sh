export TABLESTORE_TEST_DIR=/state
[ -z "$2" ] || export TABLESTORE_TEST_STORE=$2
cd /state
exec /ceph/build/bin/ceph_test_tablestore --gtest_filter="$1" $3
