/** What the user can correct: printed without a stack. The message completes "error: …". */
export class CliError extends Error {
  override readonly name = 'CliError';
}
