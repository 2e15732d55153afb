#!/usr/bin/env bash
# findings/lmdb_named_database_is_a_record.sh - LMDB 0.9: a reader that does not know of named databases gets each of them as an ordinary record of 48 bytes.
#
# Seen with    Debian 12, liblmdb-dev and liblmdb0 0.9.24-1, g++ 12.2.
# What is run  A program writes five records into a database named "train" of an LMDB environment. A second one reads the way Caffe does: the environment's
#              database without a name, by a cursor and by mdb_get.
# Behaviour    One expects no record, or an error. mdb_stat counts one entry; the cursor gives the key "train" with 48 bytes, which are LMDB's own
#              description of the database (a C struct), and so does mdb_get, with 0 (success). Only mdb_put on that key says MDB_INCOMPATIBLE.
# So           a reader of Datum records gets one damaged record instead of five good ones. Where a single value of 48 bytes does not parse, open its key by
#              mdb_dbi_open before calling the data damaged. LMDB's own mdb_dump does so by its option -a.
# Needs        g++, apt's sources for Debian 12, some seconds. Nothing is installed in the system. Exit code: 0 as described; 1 it has changed; 77 cannot be run here.
set -euo pipefail
version=0.9.24-1
skip() {
  echo "cannot be run here: $*"
  exit 77
}
command -v g++ > /dev/null || skip "g++ is not installed"
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
cd "$folder"
apt-get download "liblmdb-dev=$version" "liblmdb0=$version" > /dev/null 2>&1 || skip "liblmdb $version is not to be had here"
for package in ./*.deb; do dpkg-deb --extract "$package" root; done
mkdir db
cat > named.cpp << 'CPP'
#include <cstdio>
#include <string>

#include <lmdb.h>

int main() {
  MDB_env* env;
  MDB_txn* txn;
  MDB_dbi db;
  mdb_env_create(&env);
  mdb_env_set_maxdbs(env, 1);
  mdb_env_open(env, "db", 0, 0644);
  mdb_txn_begin(env, nullptr, 0, &txn);
  mdb_dbi_open(txn, "train", MDB_CREATE, &db);
  for (int i = 0; i < 5; ++i) {
    auto text = "0000" + std::to_string(i);
    MDB_val key{text.size(), text.data()}, value{text.size(), text.data()};
    mdb_put(txn, db, &key, &value, 0);
  }
  mdb_txn_commit(txn);
  mdb_env_close(env);

  mdb_env_create(&env);
  mdb_env_open(env, "db", 0, 0644);
  mdb_txn_begin(env, nullptr, 0, &txn);
  mdb_dbi_open(txn, nullptr, 0, &db);
  MDB_stat stat;
  mdb_stat(txn, db, &stat);
  std::printf("entries: %zu\n", stat.ms_entries);
  MDB_cursor* cursor;
  mdb_cursor_open(txn, db, &cursor);
  MDB_val key, value;
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
    std::printf("cursor: %.*s, %zu bytes\n", static_cast<int>(key.mv_size), static_cast<char*>(key.mv_data), value.mv_size);
  char name[] = "train";
  key = {5, name};
  const int got = mdb_get(txn, db, &key, &value);
  std::printf("mdb_get: %d, %zu bytes\n", got, value.mv_size);
  std::printf("mdb_put: %s\n", mdb_put(txn, db, &key, &key, 0) == MDB_INCOMPATIBLE ? "MDB_INCOMPATIBLE" : "something else");
  mdb_cursor_close(cursor);
  mdb_txn_abort(txn);
  mdb_env_close(env);
}
CPP
libraries=$folder/root/usr/lib/x86_64-linux-gnu
g++ -std=c++17 -w -I root/usr/include named.cpp -o named "$libraries"/liblmdb.so.0 -Wl,-rpath,"$libraries" || skip "g++ does not compile against it"
seen=$(timeout 20 ./named)
expected="entries: 1
cursor: train, 48 bytes
mdb_get: 0, 48 bytes
mdb_put: MDB_INCOMPATIBLE"
echo "liblmdb $version:"
echo "$seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
