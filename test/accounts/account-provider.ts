import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterFile } from '../support/after-file.js';

type Stored = Record<string, unknown> & { id: string };

/** What was made with one secret. */
interface Account {
  files: Map<string, Stored & { content: Buffer }>;
  batches: Map<string, Stored>;
  responses: Map<string, Stored>;
  vector_stores: Map<string, Stored & { files: string[] }>;
  message_batches: Map<string, Stored>;
}

const running = new Set<AccountProvider>();

afterFile(async () => {
  await Promise.all([...running].map((provider) => provider.stop()));
});

/**
 * A provider that keeps what is made with a secret for that secret alone, as OpenAI does for a project and Anthropic for a
 * workspace: files, batches, stored responses and vector stores. No ID occurs in two accounts.
 */
export class AccountProvider {
  /** Secrets that were sent, in order; empty where there was none. */
  readonly secrets: string[] = [];
  private readonly accounts = new Map<string, Account>();
  private ids = 0;

  private constructor(private readonly server: Server) {
    server.on('request', (req: IncomingMessage, res: ServerResponse) => void this.serve(req, res));
  }

  static async start(...secrets: string[]): Promise<AccountProvider> {
    const provider = new AccountProvider(createServer());
    for (const secret of secrets) provider.accounts.set(secret, emptyAccount());
    await new Promise<void>((resolve) => provider.server.listen(0, '127.0.0.1', resolve));
    running.add(provider);
    return provider;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** How many objects there are in the account of a secret. */
  count(secret: string): number {
    const kinds = Object.values(this.accounts.get(secret)!) as ReadonlyMap<string, Stored>[];
    return kinds.reduce((sum, { size }) => sum + size, 0);
  }

  async stop(): Promise<void> {
    running.delete(this);
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const bearer = /^Bearer (.+)$/.exec(req.headers.authorization ?? '')?.[1];
    const secret = bearer ?? (req.headers['x-api-key'] as string | undefined) ?? '';
    this.secrets.push(secret);
    const account = this.accounts.get(secret);
    const [status, body] =
      account === undefined
        ? [
            401,
            {
              error: { message: 'Incorrect API key.', type: 'authentication_error', code: 'invalid_api_key' },
            },
          ]
        : this.answer(account, secret, `${req.method} ${req.url!.split('?')[0]}`, Buffer.concat(chunks));
    const isText = Buffer.isBuffer(body);
    res.writeHead(status, { 'content-type': isText ? 'application/octet-stream' : 'application/json' });
    res.end(isText ? body : JSON.stringify(body));
  }

  private answer(account: Account, secret: string, line: string, body: Buffer): [number, object] {
    const [, method, kind, id, more] = /^(\w+) \/v1\/(\w+)(?:\/([^/]+))?(?:\/(.+))?$/.exec(line) ?? [];
    if (kind === 'messages' && id === 'batches') return this.messageBatch(account, method!, more, body);
    if (kind === 'chat' || kind === 'messages') return [200, { id: 'chat', account: secret }];
    if (kind === 'models')
      return [200, { object: 'list', data: [{ id: 'm', object: 'model', owned_by: secret }] }];
    if (kind === undefined || !(kind in account)) return NOT_FOUND;
    const stored = account[kind as keyof Account] as Map<string, Stored>;
    if (id === undefined) {
      if (method === 'POST') return this.make(account, kind as keyof Account, body);
      return [200, { object: 'list', data: [...stored.values()].map(shown), has_more: false }];
    }
    const found = stored.get(id);
    if (found === undefined) return NOT_FOUND;
    if (method === 'DELETE') {
      stored.delete(id);
      return [200, { id, object: kind, deleted: true }];
    }
    if (kind === 'files' && more === 'content') return [200, account.files.get(id)!.content];
    if (kind === 'vector_stores' && more === 'files') {
      const { files } = account.vector_stores.get(id)!;
      if (method === 'POST') {
        const { file_id: file } = JSON.parse(body.toString()) as { file_id: string };
        if (!account.files.has(file)) return NOT_FOUND;
        files.push(file);
        return [200, { id: file, object: 'vector_store.file', status: 'completed', vector_store_id: id }];
      }
      return [200, { object: 'list', data: files.map((file) => ({ id: file })), has_more: false }];
    }
    return [200, shown(found)];
  }

  private make(account: Account, kind: keyof Account, body: Buffer): [number, object] {
    const id = `${kind}-${++this.ids}`;
    if (kind === 'files') {
      const [, content = ''] = /name="file"[^]*?\r\n\r\n([^]*?)\r\n--/.exec(body.toString()) ?? [];
      account.files.set(id, { id, object: 'file', content: Buffer.from(content) });
      return [200, shown(account.files.get(id)!)];
    }
    const given = JSON.parse(body.toString()) as Record<string, string | undefined>;
    if (kind === 'batches') {
      const input = account.files.get(given.input_file_id!);
      if (input === undefined) return NOT_FOUND;
      const output = `files-${++this.ids}`;
      const content = Buffer.from(`results of ${input.content.toString()}`);
      account.files.set(output, { id: output, object: 'file', content });
      account.batches.set(id, { id, object: 'batch', status: 'completed', output_file_id: output });
    } else if (kind === 'responses') {
      const before = given.previous_response_id;
      if (before !== undefined && !account.responses.has(before)) return NOT_FOUND;
      const text =
        before === undefined ? given.input : `${given.input} after ${textOf(account.responses.get(before)!)}`;
      const output = [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }];
      account.responses.set(id, { id, object: 'response', status: 'completed', output });
    } else account.vector_stores.set(id, { id, object: 'vector_store', name: given.name, files: [] });
    return [200, shown((account[kind] as Map<string, Stored>).get(id)!)];
  }

  /** Its `results_url` is absolute, as that of Anthropic is. */
  private messageBatch(
    account: Account,
    method: string,
    more: string | undefined,
    body: Buffer,
  ): [number, object] {
    const [id, what] = more?.split('/') ?? [];
    if (id === undefined && method === 'POST') {
      const { requests } = JSON.parse(body.toString()) as { requests: { custom_id: string }[] };
      const made = `msgbatch-${++this.ids}`;
      const results_url = `${this.url}/v1/messages/batches/${made}/results`;
      const batch = { id: made, type: 'message_batch', processing_status: 'ended', results_url, requests };
      account.message_batches.set(made, batch);
      return [200, batch];
    }
    if (id === undefined) return [200, { data: [...account.message_batches.values()], has_more: false }];
    const batch = account.message_batches.get(id);
    if (batch === undefined) return NOT_FOUND;
    if (what === undefined) return [200, batch];
    const lines = (batch.requests as { custom_id: string }[]).map(({ custom_id }) =>
      JSON.stringify({ custom_id, result: { type: 'succeeded' } }),
    );
    return [200, Buffer.from(`${lines.join('\n')}\n`)];
  }
}

const NOT_FOUND: [number, object] = [
  404,
  { error: { message: 'No such object.', type: 'invalid_request_error', code: 'not_found' } },
];

function emptyAccount(): Account {
  return {
    files: new Map(),
    batches: new Map(),
    responses: new Map(),
    vector_stores: new Map(),
    message_batches: new Map(),
  };
}

function shown({ content: _, ...object }: Stored): object {
  return object;
}

function textOf(response: Stored): string {
  const [{ content }] = response.output as [{ content: [{ text: string }] }];
  return content[0].text;
}
