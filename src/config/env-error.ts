/** The configuration is invalid. The message lists every error on one line: variable and remedy, never a value. */
export class EnvError extends Error {
  constructor(readonly errors: readonly string[]) {
    super(`${errors.length} configuration error${errors.length === 1 ? '' : 's'}:\n  ${errors.join('\n  ')}`);
    this.name = 'EnvError';
  }
}
