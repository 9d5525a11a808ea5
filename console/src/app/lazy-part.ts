import { ApiError } from '../api/client';

const TIMEOUT_S = 30;

/**
 * Loads a part of the console that is a file of its own. @throws ApiError if it does not come: the router would load the
 * whole page again for the browser's own error, and without a gateway that is the browser's error page.
 */
export async function loadPart<Part>(load: () => Promise<Part>): Promise<Part> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('It took too long.')), TIMEOUT_S * 1_000);
  });
  try {
    return await Promise.race([load(), tooLate]);
  } catch (cause) {
    throw new ApiError(
      'This part of the console could not be loaded. The gateway does not respond, or it was updated meanwhile.',
      { status: 0, code: 'not_loaded', cause },
    );
  } finally {
    clearTimeout(timer);
  }
}
