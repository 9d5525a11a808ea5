import { modelFromPath } from '../../src/bodies/path-model.js';

describe('the model a path names', () => {
  it.each<[string, string | null]>([
    ['/v1beta/models/gemini-2.5-flash:generateContent', 'gemini-2.5-flash'],
    ['/v1beta/models/gemini-2.5-flash:streamGenerateContent', 'gemini-2.5-flash'],
    ['/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:generateContent', 'gemini-2.5-pro'],
    ['/v1beta/models/tuned%2Fmine:generateContent', 'tuned/mine'],
    ['/v1beta/models/a:b:countTokens', 'a:b'],
    ['/v1beta/models/broken%:generateContent', null],
    ['/v1beta/models/gemini-2.5-flash', null],
    ['/v1beta/models/:generateContent', null],
    ['/model/us.amazon.nova-lite-v1%3A0/converse', 'us.amazon.nova-lite-v1:0'],
    [
      '/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fm/invoke',
      'arn:aws:bedrock:us-east-1:1:inference-profile/m',
    ],
    ['/model/m/invoke-with-response-stream', 'm'],
    ['/model/m/count-tokens', 'm'],
    ['/model/m/async', null],
    ['/openai/deployments/my-gpt/chat/completions', 'my-gpt'],
    ['/deployments/my-gpt/embeddings', 'my-gpt'],
    ['/openai/deployments', null],
    ['/v1/chat/completions', null],
  ])('%s is %s', (path, model) => {
    expect(modelFromPath(path)).toBe(model);
  });
});
