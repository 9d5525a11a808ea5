import { addressClass, normaliseProviderUrl } from '../../src/platform/provider-url.js';

describe('normaliseProviderUrl', () => {
  it.each([
    ['https://api.openai.com', 'https://api.openai.com'],
    ['https://api.openai.com/', 'https://api.openai.com'],
    ['HTTPS://API.OpenAI.com:443//', 'https://api.openai.com'],
    ['https://openrouter.ai/api/', 'https://openrouter.ai/api'],
    ['https://x.openai.azure.com/openai', 'https://x.openai.azure.com/openai'],
    ['https://api.example.com/v1beta', 'https://api.example.com/v1beta'],
    ['https://api.example.com/v10', 'https://api.example.com/v10'],
    ['http://localhost:11434', 'http://localhost:11434'],
    ['http://vllm.internal:8000', 'http://vllm.internal:8000'], // names are checked when they are resolved
    ['http://127.0.0.1:8000', 'http://127.0.0.1:8000'],
    ['http://10.1.2.3', 'http://10.1.2.3'],
    ['http://172.31.255.255', 'http://172.31.255.255'],
    ['http://[::1]:8000', 'http://[::1]:8000'],
    ['http://[fd12::1]', 'http://[fd12::1]'],
    ['http://[::ffff:10.0.0.1]', 'http://[::ffff:a00:1]'],
    ['https://203.0.113.7', 'https://203.0.113.7'],
  ])('%s becomes %s', (value, url) => {
    expect(normaliseProviderUrl(value)).toEqual({ url });
  });

  it.each([
    ['https://api.openai.com/v1', 'https://api.openai.com'],
    ['https://api.openai.com/v1/', 'https://api.openai.com'],
    ['https://openrouter.ai/api/v1', 'https://openrouter.ai/api'],
    ['http://localhost:8000/V1', 'http://localhost:8000'],
  ])('rejects %s and names the right one, %s', (value, right) => {
    expect(normaliseProviderUrl(value).problem).toBe(
      `remove the trailing /v1: callers send it themselves. Use ${right}`,
    );
  });

  it.each([
    ['https://api.openai.com/v1/chat/completions', '/v1/chat/completions', 'https://api.openai.com'],
    ['https://api.openai.com/v1/responses/', '/v1/responses', 'https://api.openai.com'],
    ['https://api.anthropic.com/v1/messages', '/v1/messages', 'https://api.anthropic.com'],
    ['https://openrouter.ai/api/v1/models', '/v1/models', 'https://openrouter.ai/api'],
    [
      'https://api.example.com/openai/Chat/Completions',
      '/chat/completions',
      'https://api.example.com/openai',
    ],
  ])('rejects the endpoint %s: without %s it is %s', (value, appended, right) => {
    expect(normaliseProviderUrl(value).problem).toBe(
      `remove the trailing ${appended}: callers send it themselves. Use ${right}`,
    );
    expect(normaliseProviderUrl(right)).toEqual({ url: right });
  });

  it.each([
    'https://gateway.ai.cloudflare.com/v1/account/gateway/openai',
    'https://name.services.ai.azure.com/models',
  ])('accepts %s, which only looks like one', (url) => {
    expect(normaliseProviderUrl(url)).toEqual({ url });
  });

  it.each([
    ['', /visible ASCII/],
    ['https://api.example.com/a b', /visible ASCII/],
    ['https://api.example.com/\n', /visible ASCII/],
    ['https:\\\\api.example.com', /backslashes/],
    ['api.example.com', /starts with https/],
    ['ftp://api.example.com', /starts with https/],
    ['https:/api.example.com', /starts with https/],
    ['https:///api.example.com', /starts with https/],
    ['https://', /starts with https/],
    ['https://api.example.com:99999', /well-formed/],
    ['https://api.example.com:0', /port 0/],
    ['https://api.example.com?', /query/],
    ['https://api.example.com/#', /fragment/],
    ['https://api.example.com/?key=x', /query/],
    ['https://@api.example.com', /user name/],
    ['http://203.0.113.7', /https/],
    ['http://0xcb007107', /https/], // 203.0.113.7 written as one number
    ['http://[2001:db8::1]', /https/],
    ['https://169.254.169.254', /link-local/],
    ['https://2852039166', /link-local/], // 169.254.169.254 written as one number
    ['https://169.254.169.254.', /link-local/],
    ['https://[fe80::1]', /link-local/],
    ['https://[::ffff:169.254.169.254]', /link-local/],
    ['https://[64:ff9b::169.254.169.254]', /link-local/],
    ['https://[fd00:ec2::254]', /link-local/],
    ['https://[64:ff9b:1::a9fe:a9fe]', /link-local/],
    ['https://[::ffff:0:169.254.169.254]', /link-local/],
    ['https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]', /link-local/],
    ['https://192.0.0.192', /link-local/],
    ['http://0.0.0.0:8000', /unspecified/],
    ['http://0:8000', /unspecified/], // 0.0.0.0 in short
    ['http://[::]:8000', /unspecified/],
    ['https://239.1.2.3', /multicast/],
  ])('rejects %j', (value, remedy) => {
    expect(normaliseProviderUrl(value)).toEqual({ problem: expect.stringMatching(remedy) as string });
  });

  it('never repeats a credential, not even in the remedy for /v1', () => {
    const { problem } = normaliseProviderUrl('https://user:s3cret@api.example.com/v1');
    expect(problem).toMatch(/user name or password/);
    expect(problem).not.toMatch(/s3cret|user:/);
  });

  it('changes nothing when applied to its own result', () => {
    const { url } = normaliseProviderUrl('https://openrouter.ai/api//');
    expect(normaliseProviderUrl(url ?? '')).toEqual({ url });
  });
});

describe('addressClass', () => {
  it.each([
    ['127.9.9.9', 'local'],
    ['192.168.1.1', 'local'],
    ['100.64.0.1', 'local'],
    ['::1', 'local'],
    ['::ffff:127.0.0.1', 'local'],
    ['8.8.8.8', 'public'],
    ['172.32.0.1', 'public'],
    ['2606:4700::1111', 'public'],
    ['169.254.0.1', 'forbidden'],
    ['febf::1', 'forbidden'],
    ['::ffff:a9fe:a9fe', 'forbidden'],
    ['100.100.100.200', 'forbidden'],
    ['fd00:100::100:200', 'forbidden'],
    ['fd00:ec2::254', 'forbidden'],
    ['fd00:ec2::23', 'forbidden'],
    ['fd20:ce::254', 'forbidden'],
    ['fd00:c1::a9fe:a9fe', 'forbidden'],
    ['fd00:42::42', 'forbidden'],
    ['fd00:a9fe:a9fe::1', 'forbidden'],
    ['fd12:3456::1', 'local'],
    ['192.0.0.192', 'forbidden'],
    ['::ffff:192.0.0.192', 'forbidden'],
    ['192.0.1.1', 'public'],
    ['::169.254.169.254', 'forbidden'],
    ['::192.0.0.192', 'forbidden'],
    ['::ffff:0:169.254.169.254', 'forbidden'],
    ['::ffff:0:8.8.8.8', 'public'],
    ['64:ff9b::169.254.169.254', 'forbidden'],
    ['64:ff9b::100.100.100.200', 'forbidden'],
    ['64:ff9b::8.8.8.8', 'public'],
    ['64:ff9b:1::169.254.169.254', 'forbidden'],
    ['64:ff9b:1:abcd:12:3456:a9fe:a9fe', 'forbidden'],
    ['64:ff9b:1:a9fe:a9:fe00::', 'forbidden'], // prefix of 48 bits
    ['64:ff9b:1:12a9:fe:a9fe::', 'forbidden'], // of 56
    ['64:ff9b:1:1234:a9:fea9:fe00:0', 'forbidden'], // of 64
    ['64:ff9b:1::8.8.8.8', 'public'],
    ['2002:a9fe:a9fe::1', 'forbidden'],
    ['2002:808:808::1', 'public'],
    ['2001::1', 'forbidden'],
    ['2001:0:4136:e378:8000:63bf:3fff:fdd2', 'forbidden'],
    ['2001:4860:4860::8888', 'public'],
    ['::2', 'public'],
    ['168.63.129.16', 'forbidden'],
    ['168.63.129.17', 'public'],
    ['64:ff9b::168.63.129.16', 'forbidden'],
    ['0.0.0.0', 'forbidden'],
    ['0.1.2.3', 'forbidden'],
    ['1.0.0.0', 'public'],
    ['::', 'forbidden'],
    ['::ffff:0.0.0.0', 'forbidden'],
    ['223.255.255.255', 'public'],
    ['224.0.0.1', 'forbidden'],
    ['239.255.255.255', 'forbidden'],
    ['::ffff:224.0.0.1', 'forbidden'],
    ['ff02::1', 'forbidden'],
    ['ff0e::1', 'forbidden'],
    ['fec0::1', 'forbidden'],
    ['feff::1', 'forbidden'],
    // 169.254.169.254 at the end, whatever the prefix: ISATAP, an operator's own NAT64, ULA.
    ['2606:4700::5efe:a9fe:a9fe', 'forbidden'],
    ['2606:4700:64::169.254.169.254', 'forbidden'],
    ['fd12:3456::169.254.169.254', 'forbidden'],
    ['::ffff:0:0:a9fe:a9fe', 'forbidden'],
    ['fd12:3456::a9fe:a9fe%eth0', 'forbidden'],
    ['fd12:3456::a9fe:a9ff', 'local'],
  ])('%s is %s', (address, expected) => {
    expect(addressClass(address)).toBe(expected);
  });

  it('asks for an address', () => {
    expect(() => addressClass('localhost')).toThrow(RangeError);
  });
});
