FROM codehub-storage-job:latest
RUN printf '#!/bin/sh\nexec sleep infinity\n' > /usr/local/bin/tar && chmod 755 /usr/local/bin/tar
