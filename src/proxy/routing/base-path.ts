/**
 * Clients of a provider whose URL has a path may repeat that path: groq-sdk sends `/openai/v1/...`, which is also the path of
 * the provider's URL. It is sent once.
 *
 * @returns where the endpoint begins without it
 */
export function withoutBasePath(endpoint: string, basePath: string): number {
  return basePath !== '' && endpoint.startsWith(`${basePath}/`) ? basePath.length : 0;
}
