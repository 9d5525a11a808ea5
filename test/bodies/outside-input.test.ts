import { readBody, readForRow } from './read-body.js';

const CHUNKS = [1, 2, 3, 7, 50, 65_536];
const text = (body: unknown) => Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
const user = (...content: unknown[]) => ({ model: 'm', messages: [{ role: 'user', content }] });
const tools = (...list: unknown[]) => ({ model: 'm', tools: list });

/** Read for a row, and so that nothing is uncertain, wherever the body is cut. */
function expectAll(
  body: unknown,
  expected: { showsInput: boolean; mayAskForTools: boolean },
  chunks = CHUNKS,
): void {
  for (const read of [readForRow, readBody])
    for (const size of chunks) {
      const { showsInput, mayAskForTools } = read(text(body), [size]);
      expect({ size, read: read.name, showsInput, mayAskForTools }).toEqual({
        ...{ size, read: read.name },
        ...expected,
      });
    }
}

describe('a request', () => {
  const NAMED = 'functions of its own that are named like tools';
  it.each<[string, unknown]>([
    ['text', user({ type: 'text', text: 'See https://a.example, file_id "web_search" and mcp.' })],
    ['sound in it', user({ type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } })],
    ['text that begins like a mark', user('hypertext', 'gallery', 'filed', 'mcp__files__read', 'item', '')],
    [NAMED, tools({ type: 'function', function: { name: 'web_search', parameters: {} } })],
    [NAMED, tools({ name: 'file_search_all', input_schema: {} }, { type: 'custom', name: 'mcp' })],
    ['schemas', tools({ name: 'f', input_schema: { $schema: 'http://json-schema.org/draft-07/schema#' } })],
    [
      'schemas as PHP writes them',
      '{"a":[{"$schema":"https:\\/\\/json-schema.org\\/draft\\/2020-12\\/schema"}]}',
    ],
    ['what is null', { previous_response_id: null, conversation: null, mcp_servers: null, prompt: 'p' }],
    ['escapes of other letters', '{"input":["\\u00c9t\\u00e9","\\u4f60"]}'],
    [NAMED, JSON.stringify(tools({ type: 'custom', name: 'web_search' }), null, 2)],
  ])('with %s shows its input', (name, body) => {
    // A chunk that begins between the name and its value does not show the name.
    const whole = name === NAMED ? [65_536] : CHUNKS;
    expectAll(body, { showsInput: true, mayAskForTools: false }, whole);
  });

  it.each<[string, unknown]>([
    ['the URL of an image', user({ type: 'image_url', image_url: { url: 'https://a.example/i.png' } })],
    ['an image in it', user({ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } })],
    [
      'an image of Anthropic',
      user({ type: 'image', source: { media_type: 'image/png', data: 'iVBORw0KGgo=' } }),
    ],
    [
      'a document of Gemini',
      { contents: [{ inlineData: { mimeType: 'application/pdf', data: 'JVBERi0=' } }] },
    ],
    ['a URL that is escaped', '{"input":[{"image_url":"http:\\/\\/a.example\\/i.png"}]}'],
    ['a URL with an escaped letter', '{"input":[{"image_url":"\\u0068ttps://a.example/i.png"}]}'],
    ['a URL in capitals', user({ type: 'image', source: { type: 'url', url: 'HTTPS://A.EXAMPLE/I.PNG' } })],
    ['a URL as a member', { model: 'm', image: 'https://a.example/i.png' }],
    ['the ID of a file', user({ type: 'document', source: { type: 'file', file_id: 'f' } })],
    ['a file of Gemini', { contents: [{ parts: [{ fileData: { fileUri: 'x' } }] }] }],
    [
      'an object of a cloud',
      { messages: [{ content: [{ image: { source: { s3Location: { uri: 's3://b/k' } } } }] }] },
    ],
    ['an item of a conversation', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
    ['a previous response', { model: 'm', input: 'a', previous_response_id: 'resp_1' }],
    ['a conversation', { conversation: { id: 'conv_1' } }],
    ['a cache of Gemini', { contents: [], cachedContent: 'cachedContents/1' }],
    ['a stored prompt', { prompt: { id: 'pmpt_1' } }],
  ])('with %s has input from elsewhere', (_, body) => {
    expectAll(body, { showsInput: false, mayAskForTools: false });
  });

  it.each<[string, unknown]>([
    ['a search', tools({ type: 'web_search' })],
    ['a search of a version', tools({ type: 'web_search_20250305', name: 'web_search' })],
    [
      'a search of files',
      tools({ type: 'function', name: 'f' }, { type: 'file_search', vector_store_ids: [] }),
    ],
    ['an MCP server', tools({ type: 'mcp', server_label: 'a' })],
    ['MCP servers', { model: 'm', mcp_servers: [{ type: 'x' }] }],
    ['a search of Gemini', { contents: [], tools: [{ googleSearch: {} }] }],
    ['URLs of Gemini', { contents: [], tools: [{ url_context: {} }] }],
    ['a search by a member', { web_search_options: {} }],
    [
      'pretty JSON',
      JSON.stringify(tools({ type: 'code_interpreter', container: { type: 'auto' } }), null, 4),
    ],
  ])('for %s of the provider has input from elsewhere, and tools', (_, body) => {
    expectAll(body, { showsInput: false, mayAskForTools: true });
  });

  it('that was not read to its end may be any', () => {
    expectAll('{"model":"m","messages":[{"content":"a"}]', { showsInput: false, mayAskForTools: true });
    expectAll('\u001f\u008b gzip', { showsInput: false, mayAskForTools: true });
  });

  it('that is a form may name files and asks for no tools', () => {
    const form = '--b\r\nContent-Disposition: form-data; name="url"\r\n\r\nhttps://a.example\r\n--b--\r\n';
    expectAll(form, { showsInput: false, mayAskForTools: false });
  });
});
