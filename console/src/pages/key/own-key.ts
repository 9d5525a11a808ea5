import { api, type ResponseOf } from '../../api/client';

export type OwnKey = ResponseOf<'/self/v1/key', 'get'>;
export type OwnUsage = ResponseOf<'/self/v1/usage', 'get'>;

/** What a gateway key may know of itself. The key travels in this request's header only. */
export async function readOwnKey(key: string): Promise<{ key: OwnKey; usage: OwnUsage }> {
  const headers = { authorization: `Bearer ${key}` };
  const [own, usage] = await Promise.all([
    api.get('/self/v1/key', { headers }),
    api.get('/self/v1/usage', { headers }),
  ]);
  return { key: own, usage };
}
