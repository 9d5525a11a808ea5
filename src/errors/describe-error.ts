/** One short line about an error, safe to log: SQLSTATE or errno, and the server's or the system's own words. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const { code } = error as { code?: string };
  // Node gives an AggregateError without a message when every address of a name fails.
  const message = error.message || (error as AggregateError).errors?.map(String).join('; ') || error.name;
  return code !== undefined && !message.includes(code) ? `${message} (${code})` : message;
}
