// A provider to show things with: aimock answers like the OpenAI API, slowly enough to watch.
import { LLMock } from '@copilotkit/aimock';

export const PROVIDER_KEY = 'sk-only-the-provider-and-the-gateway-know-this';

export async function startProvider() {
  const provider = new LLMock({ port: 0, host: '127.0.0.1', auth: { apiKeys: [PROVIDER_KEY] } });
  provider.onMessage('What is a postern?', {
    content:
      'A small gate at the back of a castle: whoever has the key may pass, and somebody notes who did.',
  });
  provider.onMessage(
    'Count to ten.',
    { content: 'One, two, three, four, five, six, seven, eight, nine, ten.' },
    { chunkSize: 6, streamingProfile: { ttft: 250, tps: 8 } },
  );
  await provider.start();
  return provider;
}
