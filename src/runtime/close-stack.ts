/** What was opened, closed in the reverse order. */
export class CloseStack {
  private readonly closers: (() => Promise<void> | void)[] = [];

  add(closer: () => Promise<void> | void): void {
    this.closers.push(closer);
  }

  /** One that fails keeps none of the others from closing. @throws the first one's error, at the end */
  async close(): Promise<void> {
    const faults: unknown[] = [];
    for (const closer of this.closers.splice(0).reverse()) {
      try {
        await closer();
      } catch (error) {
        faults.push(error);
      }
    }
    if (faults.length > 0) throw faults[0];
  }
}
