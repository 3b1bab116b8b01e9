"""How fast the console paints."""

import os
import re
import statistics
import time

from console import DATA, StaticPage, console


def first_paint(browser, server):
    """The first useful paint, against a static page with the same bytes, and that early requests are not repeated."""
    with console(browser, server) as tab:
        asked = []
        tab.page.on("request", lambda request: asked.append(f"{request.method} {request.url.split('/documents')[-1]}"))
        tab.open(DATA + "products")
        tab.role("option").first.wait_for()
        tab.page.wait_for_timeout(300)
        for each in ["POST :listCollectionIds", "GET /products?pageSize=100&showMissing=true"]:
            assert asked.count(each) == 1, asked
    # The browser says when it painted the id of the first row.
    script = """new MutationObserver((_, observer) => {
        const row = document.querySelector(".line .id");
        if (!row?.textContent) return;
        row.setAttribute("elementtiming", "row");
        observer.disconnect();
    }).observe(document, { childList: true, subtree: true, characterData: true });
    new PerformanceObserver((list) => { window.painted = list.getEntries()[0].renderTime; }).observe({ type: "element", buffered: true });"""

    def painted(url, serve=None):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.add_init_script(script)
        if serve:
            serve(page)
        page.goto(url)
        end = time.monotonic() + 10
        while not (found := page.evaluate("window.painted")) and time.monotonic() < end:
            page.wait_for_timeout(20)
        assert found, f"{url} was not painted"
        html = page.content()
        context.close()
        return found, html
    address = f"{server.url}/_/console/#/{DATA}products"
    html = painted(address)[1]
    path = re.search(r'src="(a/[^"]+)"', html)[1]
    inert = b"/*" + server.call("GET", "/_/console/" + path, token=None).replace(b"*/", b"* /") + b"*/"
    page = re.sub(r"<script.*?</script>", "", html, flags=re.S).replace("</head>", '<script type="module" src="/s.js"></script></head>')
    with StaticPage({"/": (page.encode(), "text/html; charset=utf-8"), "/s.js": (inert, "text/javascript")}) as static:
        pairs = [(painted(address)[0], painted(static)[0]) for _ in range(9)]
    console_time, static_time = (statistics.median(times) for times in zip(*pairs))
    ratio = statistics.median(own / plain for own, plain in pairs)
    print(f"    rows after {console_time:.0f} ms, static page after {static_time:.0f} ms: {ratio:.2f} times")
    assert ratio <= float(os.environ.get("CONSOLE_PAINT_MAX", "4")), ratio
