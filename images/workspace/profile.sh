# A login shell starts with Debian's PATH.
PATH=/home/coder/.local/bin:/opt/node/bin:$PATH
