/** Wire schemas of callbacks. */
import { Type } from 'typebox';
import { CALLBACK_STATES } from '../../callbacks/index.ts';
import { nullable } from '../../http/contract.ts';

export const CallbackStatus = Type.Object(
  {
    url: Type.String(),
    status: Type.Enum([...CALLBACK_STATES], {
      description: '`stopped`: the receiver answered with 410. `failed`: every attempt of a day failed',
    }),
    attempts: Type.Integer({ minimum: 0 }),
    last_attempt_at: nullable(Type.Integer({ description: 'Unix seconds' })),
    last_error: nullable(Type.String()),
  },
  { $id: 'BatchCallback' },
);

export const CallbackSecret = Type.Object(
  {
    secret: Type.String({ description: '`whsec_` and 32 bytes in base64' }),
    created_at: Type.Integer({ description: 'Unix seconds' }),
    previous_expires_at: nullable(
      Type.Integer({ description: 'Unix seconds; until then callbacks are also signed with the previous secret' }),
    ),
  },
  { $id: 'BatchCallbackSecret' },
);
