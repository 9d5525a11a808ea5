import type { Provider } from './provider.js';

/** A response of a provider to the gateway itself. */
export interface ProviderResponse {
  readonly status: number;
  readonly body: AsyncIterable<Buffer>;
}

/** Reads from a provider with its secret, for the gateway itself. proxy/upstream implements it. */
export abstract class ProviderReader {
  /**
   * Makes a GET request, with the same rules for addresses as for calls. Redirects are not followed.
   *
   * @param path below the provider's URL
   * @param use reads the response; the connection is closed once it has ended
   * @throws what `use` throws, and errors of the credential and of the connection
   */
  abstract get<T>(
    provider: Provider,
    path: string,
    signal: AbortSignal,
    use: (response: ProviderResponse) => Promise<T>,
  ): Promise<T>;
}
