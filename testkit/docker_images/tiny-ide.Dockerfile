FROM codehub-storage-job:latest
ARG FLAG=
ARG SECRET_VARIABLE=TOKEN
ARG AGENT_PORT=3129
COPY tiny_ide.py /tiny_ide.py
COPY run-agent /opt/codehub/
COPY workspace_agent /opt/codehub/workspace_agent
RUN mkdir -p /home/coder && chown 1000:1000 /home/coder
ENV LISTEN=0.0.0.0 FLAG=$FLAG
LABEL codehub.io/ide=tiny codehub.io/port=8080 codehub.io/health-path=/w/{id}/health \
      codehub.io/keep-prefix=true codehub.io/read-only-root=true \
      codehub.io/secret-variable=$SECRET_VARIABLE codehub.io/secret-header="Authorization: token {secret}" \
      codehub.io/agent-port=$AGENT_PORT codehub.io/socket-arguments={socket}
ENTRYPOINT ["/bin/sh", "-c", "exec /opt/codehub/run-agent python3 -I -S /tiny_ide.py \"$1\" \"$CODEHUB_BASE_PATH\" $FLAG", "tiny-ide"]
# DockerSpawner requires one.
CMD ["8080"]
