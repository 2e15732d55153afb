#include "messages/frames.hpp"
