// The rig's page server, when the page was opened from there: takes orders and reports what is shown and touched.

const RETRY_MS = 1000;
const REPORT_TOUCHES_MAX = 64;

function pause(ms) {
  return new Promise((resume) => setTimeout(resume, ms));
}

class Rig {
  constructor(page) {
    this.page = page;
    this.served = location.protocol === "http:" || location.protocol === "https:";
    this.pageId = Array.from({length: 4}, () => Math.random().toString(36).slice(2, 8)).join("");
    this.order = null;
    this.received = 0;
    this.reports = 0;
    this.wake = () => {};
  }

  start() {
    if (!this.served) return;
    this.takeOrders();
    this.sendReports();
  }

  // Something to report has changed.
  changed() {
    this.wake();
  }

  async takeOrders() {
    for (;;) {
      try {
        const answer = await fetch(`order?after=${this.order ? this.order.number : 0}`, {cache: "no-store"});
        if (!answer.ok) throw new Error(`status ${answer.status}`);
        this.page.rigReached(true);
        if (answer.status === 200) {
          const order = await answer.json();
          await this.page.obey(order);
          // Only now: touches on the former page must not be reported as touches on the one ordered.
          this.order = order;
        }
      } catch {
        this.page.rigReached(false);
        await pause(RETRY_MS);
      }
    }
  }

  async sendReports() {
    for (;;) {
      const news = new Promise((resume) => { this.wake = resume; });
      const touches = this.page.touches.all
        .filter((touch) => touch.number > this.received)
        .slice(0, REPORT_TOUCHES_MAX)
        .map(({shown, ...reported}) => reported);
      if (await this.post({...this.page.state(), touches})) {
        const last = touches.length ? touches[touches.length - 1].number : this.received;
        this.received = last;
        if (this.page.touches.all.every((touch) => touch.number <= last)) await news;
      } else {
        await pause(RETRY_MS);
      }
    }
  }

  async post(state) {
    this.reports += 1;
    const report = {pageId: this.pageId, report: this.reports, order: this.order ? this.order.number : 0, ...state};
    try {
      const answer = await fetch("report", {method: "POST", body: JSON.stringify(report), cache: "no-store"});
      return answer.ok;
    } catch {
      return false;
    }
  }
}
