/** Signs each request to a provider with its whole body. */
export interface RequestSigner {
  /**
   * @param target raw path with its query, as it is sent
   * @param headers flat raw headers for the provider, without `Host` and without a credential
   * @returns the headers to send
   */
  sign(method: string, target: string, headers: readonly string[], body: Buffer | null): string[];
}

/** The largest body that is gathered to be signed. */
export const MAX_SIGNED_BYTES = 26_214_400;
