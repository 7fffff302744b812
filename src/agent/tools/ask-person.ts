import type { Tool } from './tool.ts';

export const askPerson: Tool = {
  name: 'ask',
  description:
    'Asks the person you work for, and waits for the answer. Only for what you cannot find out and what changes the result.',
  parameters: {
    type: 'object',
    properties: {
      question: { type: 'string' },
      choices: { type: 'array', items: { type: 'string' }, description: 'The possible answers, if there are few.' },
    },
    required: ['question'],
  },
  kind: 'other',
  needsConsent: false,
  title: ({ question }) => String(question),
  async run({ question, choices }, { ask }) {
    const answer = await ask(String(question), (choices as string[] | undefined) ?? null);
    return answer ?? 'The person does not want to answer. Decide for yourself, or say what is missing.';
  },
};
