FROM codehub-control-plane:latest
COPY testkit /opt/testkit/testkit
ENV PYTHONPATH=/opt/testkit
