FROM codehub-storage-job:latest
RUN printf '#!/bin/sh\nexec sleep infinity\n' > /usr/local/bin/zstd && chmod 755 /usr/local/bin/zstd
