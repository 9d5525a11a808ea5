/** Lets each user do one thing at a time in this process, in the order of the requests. */
export class Turns {
  private readonly last = new Map<string, Promise<unknown>>();

  /** @returns the result of `work`, which begins when all before it have settled */
  async take<T>(user: string, work: () => Promise<T>): Promise<T> {
    const before = this.last.get(user) ?? Promise.resolve();
    const turn = before.then(work, work);
    this.last.set(user, turn);
    try {
      return await turn;
    } finally {
      if (this.last.get(user) === turn) this.last.delete(user);
    }
  }
}
