# A login shell begins with Debian's own PATH.
PATH=/home/coder/.local/bin:/opt/node/bin:$PATH
