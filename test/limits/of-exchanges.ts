/**
 * A test whose figures are exact as long as exchanges succeed: what one has leased or returned whose answer did not come in
 * time, on a busy machine, may be lost. It may fail twice if an exchange failed meanwhile.
 *
 * @param failed counts the exchanges that failed
 * @param begin what comes before each further try
 */
export function ofExchanges(
  failed: () => number,
  begin: () => Promise<void>,
  test: () => Promise<void>,
): () => Promise<void> {
  return async () => {
    for (let left = 2; ; left--) {
      const before = failed();
      try {
        return await test();
      } catch (error) {
        if (left === 0 || failed() === before) throw error;
        await begin();
      }
    }
  };
}
