import { eventually } from '../support/eventually.js';

/** Why a request of the admin API is rejected; a 503 of a busy machine is asked again. @throws Error if it succeeds */
export function rejectionOf(ask: () => Promise<unknown>): Promise<string> {
  return eventually(async () => {
    const message = await ask().then(
      () => null,
      (error: Error) => error.message,
    );
    if (message === null) throw new Error('It succeeded.');
    return !/: 503 /.test(message) && message;
  });
}
