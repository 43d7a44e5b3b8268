#!/usr/bin/env bash
# The core's tests on another processor: cross-compiled for aarch64, run by an aarch64 Python under qemu-user.
#
# Needs, from Debian, g++-aarch64-linux-gnu and qemu-user, and a Python 3.11 with cmake, ninja and nanobind, which is
# the first argument. Everything else goes to build/aarch64; nothing of the system is changed.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "${1:-.venv/bin/python}")
place=$PWD/build/aarch64
root=$place/root

"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' ||
  { echo "tests/aarch64.sh needs Python 3.11, the version of Debian's packages; got $("$python" --version)"; exit 1; }
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v $tool >/dev/null || { echo "tests/aarch64.sh needs $tool: install g++-aarch64-linux-gnu and qemu-user"; exit 1; }
done

if [ ! -e "$place/.python" ]; then # Debian's Python for aarch64, unpacked, with the packages larank needs
  mkdir -p "$place/apt/lists/partial" "$place/apt/archives/partial" "$place/debs" "$root"
  touch "$place/apt/status"
  apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=root
       -o Dir::State="$place/apt" -o Dir::State::status="$place/apt/status" -o Dir::Cache="$place/apt")
  "${apt[@]}" update
  (cd "$place/debs" && "${apt[@]}" download libc6 libgcc-s1 libstdc++6 zlib1g libexpat1 libffi8 libssl3 libbz2-1.0 \
    liblzma5 libsqlite3-0 libuuid1 python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libpython3.11-dev)
  for package in "$place"/debs/*.deb; do dpkg -x "$package" "$root"; done
  "$python" -m pip install --quiet --disable-pip-version-check --target "$place/site" --upgrade --only-binary=:all: \
    --python-version 3.11 --platform manylinux2014_aarch64 --platform manylinux_2_27_aarch64 \
    --platform manylinux_2_28_aarch64 numpy scipy scikit-learn rich safetensors typer pytest hypothesis
  touch "$place/.python"
fi

PATH=$(dirname "$python"):$PATH
cmake -S . -B "$place/core" -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_CXX_FLAGS="-isystem $root/usr/include" \
  -DPython_EXECUTABLE="$python" -DPython_INCLUDE_DIR="$root/usr/include/python3.11" \
  -DLARANK_WERROR=ON -DLARANK_TEST_HOOKS=ON >"$place/cmake.log"
cmake --build "$place/core"
rm -rf "$place/package" && mkdir "$place/package" && cp -r src/larank "$place/package/"
rm -f "$place"/package/larank/_core*.so
for module in _core _core_hooks; do cp "$place/core/$module".*.so "$place/package/larank/$module.so"; done
mkdir -p "$place/package/larank-0.dist-info" # what the library says of its version
printf 'Metadata-Version: 2.1\nName: larank\nVersion: 0\n' >"$place/package/larank-0.dist-info/METADATA"

LARANK_DATA=/nonexistent PYTHONPATH=$place/package:$place/site \
  qemu-aarch64 -L "$root" "$root/usr/bin/python3.11" -m pytest -q -p no:cacheprovider "${@:2}" \
  tests/blocks/test_kernelmap.py tests/linear/test_rowqp.py tests/kernel/test_*session*.py tests/sequence/test_chain_session.py \
  tests/sequence/test_chain_search.py tests/data/test_svmlight.py
