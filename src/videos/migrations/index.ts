import { videos } from './0270-videos.ts';
import { videoList } from './0271-video-list.ts';
import { resumedVideos } from './0272-resumed-videos.ts';
import { videoCallbacks } from './0273-video-callbacks.ts';

export const videoMigrations = [videos, videoList, resumedVideos, videoCallbacks];
