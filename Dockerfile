# The app in a container, as two targets:
#   docker build --target reader -t set-workbench .        # no torch: reads, evaluates and draws stored runs and files
#   docker build -t set-workbench:full .                   # with torch: also trains
#   docker run -p 7860:7860 -v runs:/home/user/runs set-workbench
# Port 7860 and user 1000 are what a Hugging Face Docker Space expects (docs/deploy.md).

FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY workbench workbench
COPY app app
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /wheel

FROM python:3.11-slim AS reader
COPY constraints.txt /tmp/constraints.txt
COPY --from=build /wheel /wheel
RUN pip install --no-cache-dir --constraint /tmp/constraints.txt "$(echo /wheel/*.whl)[app]"
RUN useradd --create-home --uid 1000 user
USER user
WORKDIR /home/user
ENV WORKBENCH_HOME=/home/user/runs
RUN mkdir runs
EXPOSE 7860
CMD ["workbench", "app", "--headless", "--host", "0.0.0.0", "--token", "", "--port", "7860"]

FROM reader AS full
USER root
RUN pip install --no-cache-dir --constraint /tmp/constraints.txt "$(echo /wheel/*.whl)[app,train,export]"
USER user
