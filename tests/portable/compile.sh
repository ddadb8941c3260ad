#!/bin/sh
# Every text that the array layer generates, and every kernel of the package, by Apple's compiler.
# Needs a Mac with Xcode; prints what does not compile.
cd "$(dirname "$0")/../.." || exit 1
status=0
for file in tests/portable/*.metal examples/*.metal src/metalloid/cli/*.metal src/metalloid/bench/*.metal; do
    xcrun -sdk macosx metal -std=metal3.1 -Wno-unused -c "$file" -o /dev/null || {
        echo "refused: $file"
        status=1
    }
done
exit $status
