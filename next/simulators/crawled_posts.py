"""Batches as crawlers of social networks write them: posts of 2 to 6 KB in two languages, errors, odd spellings."""

import json
from random import Random
from typing import Any
from uuid import UUID

from backports import zstd

GOOD = "đẹp quá, rất thích, tuyệt vời, giá hợp lý, giao nhanh, great, love it, works well, good value, amazing".split(
    ", "
)
BAD = "tệ quá, thất vọng, giao chậm, bị lỗi, không hài lòng, terrible, broken, too expensive, slow, rude".split(", ")
PLAIN = """hôm nay mình mới nhận xe và đi thử một vòng quanh thành phố thấy máy chạy bình thường màu xanh ghế da pin còn
bảy mươi phần trăm the phone arrived on monday with a charger and two cables i used it for a week at work and at home
shop giao hàng qua bưu điện nhân viên gọi trước khi đến quán cà phê gần nhà cuối tuần này cả nhà đi chơi""".split()
CODES = "RATE_LIMITED CONTENT_REMOVED NETWORK_ERROR TIMEOUT PARSE_ERROR STORAGE_ERROR UNKNOWN_ERROR".split()


class CrawledPosts:
    """A world of posts, the same for a seed."""

    def __init__(self, seed: int, *, failing: float = 0.1, comments: int = 3) -> None:
        self.random = Random(seed)
        self.failing, self.comments = failing, comments
        self.projects = [str(UUID(int=self.random.getrandbits(128), version=4)) for _ in range(4)]
        self._number = 0

    def text(self, words: int) -> str:
        """Some words, with a phrase of mood here and there."""
        random = self.random
        found = [random.choice(PLAIN) for _ in range(words)]
        for _ in range(max(1, words // 12)):
            found.insert(random.randrange(len(found) + 1), random.choice(random.choice((GOOD, GOOD, BAD))) + ",")
        return " ".join(found) + random.choice(("!", ".", " 🔥", " #xe #vinfast", "..."))

    def item(self, job: str, platform: str) -> dict[str, Any]:
        """A post, or that it could not be fetched."""
        random = self.random
        self._number += 1
        one = str(7_300_000_000_000_000_000 + self._number * 1_000_003)
        meta: dict[str, Any] = {
            "id": one, "platform": platform.upper(), "job_id": job, "task_type": "research_and_crawl",
            "crawled_at": "2025-12-06T10:15:30Z", "published_at": f"2025-11-{random.randint(1, 28):02}T08:00:00Z",
            "permalink": f"https://{platform}.example/v/{one}", "keyword_source": "VinFast VF8",
            "pipeline_version": f"crawler_{platform}_v3", "fetch_status": "success", "lang": "vi", "region": "VN",
        }  # fmt: skip
        if random.random() < self.failing:
            meta |= {"fetch_status": "error", "error_code": random.choice(CODES), "fetch_error": self.text(6),
                     "error_details": {"http": random.choice((403, 429, 500))}}  # fmt: skip
            return {"meta": meta, "content": None, "author": None, "comments": []}
        counts = {name: random.randrange(10**5) for name in ("views", "likes", "comments_count", "shares", "saves")}
        content = {
            "text": self.text(random.randint(15, 60)),
            "duration": random.randint(5, 90),
            "hashtags": ["xe", "vf8"],
        }
        if random.random() < 0.3:
            content["transcription"] = self.text(80)
        return {
            "meta": meta,
            "content": content,
            "interaction": counts,
            "author": {"id": f"u{random.randrange(500)}", "name": self.text(2), "followers": random.randrange(90_000),
                       "avatar_url": "https://cdn.example/a.jpg", "is_verified": random.random() < 0.1},
            "comments": [
                {"id": f"c{one}-{place}", "text": self.text(random.randint(4, 14)), "likes": random.randrange(50),
                 "author_name": "x", "created_at": "2025-12-05T00:00:00Z"} for place in range(self.comments)
            ],
        }  # fmt: skip

    def batch(
        self, number: int, size: int = 50, platform: str = "tiktok"
    ) -> tuple[bytes, str, bytes, list[dict[str, Any]]]:
        """The message that names a batch, its path, the object there, and its items."""
        project = self.random.choice(self.projects)
        job = f"{project}-brand-{number}"
        items = [self.item(job, platform) for _ in range(size)]
        path = f"crawl-results/{platform}/{project}/brand/batch_{number:06}.json"
        payload = {
            "minio_path": path,
            "project_id": project,
            "job_id": job,
            "platform": platform,
            "content_count": size,
            "batch_index": number,
            "task_type": "research_and_crawl",
            "keyword": "VF8",
        }
        event = {"event_id": f"evt_{number:08}", "event_type": "data.collected", "timestamp": "2025-12-06T10:15:35Z",
                 "payload": payload}  # fmt: skip
        body = json.dumps(items, ensure_ascii=False).encode()
        return json.dumps(event).encode(), path, zstd.compress(body, 2) if number % 2 else body, items
