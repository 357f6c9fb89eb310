"""Items of a crawler, and whose they are."""

from sanderling.events.producer import BatchSource

UUID = "fc5d5ffb-36cc-4c8d-a288-f5215af7fb80"
JOB = f"{UUID}-competitor-Misa-0"
SOURCE = BatchSource(platform="tiktok", job_id=JOB, brand_name="VinFast", keyword="VF8")
FOLDER = f"crawl-results/tiktok/{UUID}/competitor_Misa"


def item(number: int, **more: object) -> dict[str, object]:
    return {
        "meta": {"id": str(7_000_000_000_000_000_000 + number), "platform": "TIKTOK", "fetch_status": "success"},
        "content": {"text": f"text of {number}", **more},
        "interaction": {"views": number},
        "author": {"id": "1", "followers": 5},
        "comments": [],
    }
