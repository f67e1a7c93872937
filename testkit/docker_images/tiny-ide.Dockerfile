FROM codehub-storage-job:latest
ARG FLAG=
COPY tiny_ide.py /tiny_ide.py
RUN mkdir -p /home/coder && chown 1000:1000 /home/coder
ENV LISTEN=0.0.0.0 FLAG=$FLAG
LABEL codehub.io/ide=tiny codehub.io/port=8080 codehub.io/health-path=/w/{id}/health \
      codehub.io/keep-prefix=true codehub.io/read-only-root=true
ENTRYPOINT ["/bin/sh", "-c", "exec python3 -I -S /tiny_ide.py 8080 \"$CODEHUB_BASE_PATH\" $FLAG"]
