"""A page of HTML as its tests read it."""

import html.parser

from launch.pages.report.words import NBSP


class Page(html.parser.HTMLParser):
    """The elements with their attributes in order, and the text that is read."""

    def __init__(self, text):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data.replace(NBSP, " ")
