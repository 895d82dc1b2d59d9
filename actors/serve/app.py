"""The service over HTTP: FastAPI round a RewardService. Needs the extra `serve`."""

from __future__ import annotations

import math
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse

from kopt.actors.serve.config import ServeConfig
from kopt.actors.serve.messages import Batch, Judgement, Judgements
from kopt.actors.serve.service import Busy, RewardService
from kopt.version import __version__


def make_app(service: RewardService, *, config: ServeConfig) -> FastAPI:
    """Return the app.

    `POST /v1/judgements` judges a batch; `GET /v1/judgements/{key}` asks for one again; `GET
    /health` says how busy it is. 429 with `Retry-After` (seconds): nothing was taken, ask again.
    """
    app = FastAPI(title="kopt reward service", version=__version__)

    @app.post("/v1/judgements")
    async def judge(batch: Batch) -> Judgements:
        if len(batch.items) > config.max_batch:
            detail = f"expected at most {config.max_batch} items, found {len(batch.items)}"
            raise HTTPException(status_code=413, detail=detail)
        return Judgements(items=await service.judge(batch.items, wait_s=batch.wait_s))

    @app.get("/v1/judgements/{key}")
    async def look_up(key: str, wait_s: float = 0.0) -> Judgement:
        answer = await service.look_up(key, wait_s=max(0.0, wait_s))
        if answer is None:
            raise HTTPException(status_code=404, detail="no such judgement: send the completion")
        return answer

    @app.get("/health")
    async def health() -> dict[str, Any]:
        return {
            "status": "ok",
            "kopt": __version__,
            "waiting": service.waiting,
            "max_waiting": config.max_waiting,
            "judged": service.judged,
            "served": service.served,
            "problems": service.problem_names(),
        }

    @app.exception_handler(Busy)
    async def busy(request: Request, error: Busy) -> JSONResponse:
        del request
        return JSONResponse(
            status_code=429,
            content={"detail": "too many candidates wait; nothing was taken, ask again"},
            headers={"Retry-After": str(math.ceil(error.retry_after_s))},
        )

    return app
